// json= conditions: JSON Pointers (RFC 6901) into a body, and the values they are compared with.
#include "core/json.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace cb::test {
namespace {

bool holds(std::string_view text, std::string_view body) {
    core::JsonCondition condition;
    const char* const error = core::parse_json_condition(text, condition);
    EXPECT_EQ(error, nullptr) << text << ": " << error;
    return error == nullptr && core::holds(condition, body);
}

const std::string document = R"({
    "code": 7, "big": 9007199254740993, "half": 0.5, "text": "down", "number": "7", "empty": "", "yes": true,
    "no": false, "nothing": null, "list": [10, {"x": "a"}, [true]], "object": {"code": 8}, "a/b": 1, "m~n": 2,
    "a:b": 3, "comma": "a,b", "back\\slash": 4, "": 5, "deep": {"er": {"list": [{"state": "bad"}]}}
})";

TEST(JsonCondition, FindsValuesOfEveryType) {
    EXPECT_TRUE(holds("/code:7", document));
    EXPECT_TRUE(holds("/code:5,6,7", document));
    EXPECT_TRUE(holds("/text:down", document));
    EXPECT_TRUE(holds("/yes:true", document));
    EXPECT_TRUE(holds("/no:false", document));
    EXPECT_TRUE(holds("/nothing:null", document));
    EXPECT_TRUE(holds("/number:7", document)) << "a string of digits";
    EXPECT_TRUE(holds("/empty:,x", document)) << "the empty string is a value too";
    EXPECT_FALSE(holds("/code:8", document));
    EXPECT_FALSE(holds("/text:Down", document));
    EXPECT_FALSE(holds("/text:dow", document));
    EXPECT_FALSE(holds("/text:downs", document));
    EXPECT_FALSE(holds("/yes:1", document));
    EXPECT_FALSE(holds("/nothing:false", document));
    EXPECT_FALSE(holds("/object:8", document)) << "an object is no value";
    EXPECT_FALSE(holds("/list:10", document));
}

TEST(JsonCondition, ComparesNumbersByTheirValue) {
    for (const char* same : {"/half:0.5", "/half:5e-1", "/code:7.0", "/code:70e-1", "/big:9007199254740993"})
        EXPECT_TRUE(holds(same, document)) << same;
    for (const char* other : {"/half:0.50001", "/code:7x", "/code:07", "/code: ", "/code:nan", "/big:9007199254740992"})
        EXPECT_FALSE(holds(other, document)) << other;
}

TEST(JsonCondition, WalksObjectsAndArrays) {
    EXPECT_TRUE(holds("/list/0:10", document));
    EXPECT_TRUE(holds("/list/1/x:a", document));
    EXPECT_TRUE(holds("/list/2/0:true", document));
    EXPECT_TRUE(holds("/object/code:8", document));
    EXPECT_TRUE(holds("/deep/er/list/0/state:bad", document));
    EXPECT_TRUE(holds("/:5", document)) << "the key that is empty";
    for (const char* nowhere :
         {"/list/3:10", "/list/00:10", "/list/-:10", "/list/x:10", "/list/99999999999999999999:10", "/list/:10",
          "/nowhere:7", "/code/x:7", "/text/0:d", "/object/code/x:8", "//code:8"}) {
        EXPECT_FALSE(holds(nowhere, document)) << nowhere;
    }
}

TEST(JsonCondition, KnowsTheEscapesOfPointersAndItsOwn) {
    EXPECT_TRUE(holds("/a~1b:1", document));
    EXPECT_TRUE(holds("/m~0n:2", document));
    EXPECT_TRUE(holds("/a\\:b:3", document));
    EXPECT_TRUE(holds("/comma:x,a\\,b", document));
    EXPECT_TRUE(holds("/back\\\\slash:4", document));
    EXPECT_TRUE(holds("/x:a:b", R"({"x": "a:b"})")) << "in a value a colon is itself";
    EXPECT_FALSE(holds("/comma:a,b", document));
}

TEST(JsonCondition, LooksAtTheWholeDocumentWithAnEmptyPointer) {
    EXPECT_TRUE(holds(":down", "\"down\""));
    EXPECT_TRUE(holds(":7", " 7 "));
    EXPECT_TRUE(holds(":null", "null"));
    EXPECT_FALSE(holds(":7", "[7]"));
    EXPECT_TRUE(holds("/0:7", "[7]"));
}

TEST(JsonCondition, HoldsForNoBodyThatIsNotJson) {
    for (const char* broken :
         {"", " ", "{", "{\"code\": 7", "{\"code\": 7}}", "{\"code\": 7} x", "{code: 7}", "{'code': 7}", "<html>",
          "{\"code\": 07}", "{\"code\": 7,}", "\xff\xfe{\"code\": 7}", "{\"code\": \"\xff\"}"}) {
        EXPECT_FALSE(holds("/code:7", broken)) << broken;
    }
    EXPECT_FALSE(holds("/code:7", std::string(100'000, '['))) << "nested beyond reason";
    EXPECT_FALSE(holds("/code:7", document.substr(0, document.size() / 2)));
    const std::string with_nul("{\"code\": 7}\0", 12);
    EXPECT_FALSE(holds("/code:7", with_nul));
}

TEST(JsonCondition, LooksSixtyFourLevelsDeepAndNoDeeper) {
    const auto nested = [](std::size_t levels, const std::string& open, const std::string& close) {
        std::string text = R"({"code": 7, "deep": )";
        for (std::size_t i = 1; i < levels; ++i)
            text += open;
        text += "0";
        for (std::size_t i = 1; i < levels; ++i)
            text += close;
        return text + "}";
    };
    for (const auto& [open, close] : {std::pair{"[", "]"}, std::pair{"{\"a\": ", "}"}}) {
        EXPECT_TRUE(holds("/code:7", nested(64, open, close))) << open;
        EXPECT_FALSE(holds("/code:7", nested(65, open, close))) << open;
        EXPECT_FALSE(holds("/code:7", nested(100'000, open, close))) << open;
    }
    EXPECT_TRUE(holds("/code:7", R"({"code": 7, "wide": [)" + std::string(40'000, ' ') + "[],[],[]" + "]}"));
}

TEST(JsonCondition, TakesBracketsInStringsForText) {
    const std::string many(1000, '[');
    EXPECT_TRUE(holds("/code:7", R"({"text": ")" + many + R"(", "code": 7})"));
    EXPECT_TRUE(holds("/code:7", R"({"text\"": "\"\\\"{)" + many + R"(", "code": 7})"));
    EXPECT_TRUE(holds("/code:7", R"({"end": "\\", "code": 7})"));
    EXPECT_FALSE(holds("/code:7", R"({"end": "\\", "code": 7, "deep": )" + many + std::string(1000, ']') + "}"));
    EXPECT_FALSE(holds("/0:7", "]" + many)) << "closed more often than opened";
}

TEST(JsonCondition, StandsUpToEveryPieceOfADocument) {
    for (std::size_t length = 0; length < document.size(); ++length) {
        EXPECT_FALSE(holds("/code:7", std::string_view(document).substr(0, length))) << length;
    }
    EXPECT_TRUE(holds("/code:7", document));
}

TEST(JsonCondition, SaysWhatIsWrongWithIt) {
    for (const char* wrong : {"", "code:7", "code", "#/code:7", "/code", "/code:", "/a~2b:7", "/a~:7", "/code\\:7"}) {
        core::JsonCondition condition;
        EXPECT_NE(core::parse_json_condition(wrong, condition), nullptr) << wrong;
    }
}

}  // namespace
}  // namespace cb::test
